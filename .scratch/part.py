import torch, time, psutil, sys, cProfile, pstats, os
from stoker.loader import DataLoader
class D(torch.utils.data.Dataset):
    def __len__(s): return 8000
    def __getitem__(s,i): time.sleep(0.00276); return i
def init(w):
    if w==0 and len(sys.argv)>1:
        import stoker.crew.worker as wk, atexit
        from multiprocessing import util
        pr=cProfile.Profile(); pr.enable()
        util.Finalize(None, lambda:(pr.disable(), pstats.Stats(pr).sort_stats("tottime").print_stats(22)), exitpriority=1)
if __name__=="__main__":
    l=DataLoader(D(),batch_size=16,num_workers=8,worker_init_fn=init,persistent_workers=True); it=iter(l)
    for _ in range(50): next(it)
    ps=[psutil.Process(w.pid) for w in it._workers]
    n0=l.stats()["tasks"]; c0=time.process_time(); w0=[sum(p.cpu_times()[:2]) for p in ps]; t0=time.perf_counter(); n=0
    for _ in range(400): next(it); n+=1
    dt=time.perf_counter()-t0; k=l.stats()["tasks"]-n0
    print(f"{n*16/dt:.0f}/s tasks {k} trainer {(time.process_time()-c0)/k*1e6:.0f} us/task workers {sum(sum(p.cpu_times()[:2])-w for p,w in zip(ps,w0))/k*1e6:.0f} us/task")
    l.close()
