import sys, time; sys.path.insert(0,".scratch")
import q, torch, cProfile, pstats
from stoker.loader import DataLoader as S
ds,k=q.mk("f32")
def init(w):
    if w==0 and len(sys.argv)>1:
        from multiprocessing import util
        pr=cProfile.Profile(); pr.enable()
        util.Finalize(None, lambda:(pr.disable(), pstats.Stats(pr).sort_stats("tottime").print_stats(12)), exitpriority=1)
l=S(ds,worker_init_fn=init,**k)
pr=cProfile.Profile(); pr.enable()
it=iter(l); t=time.perf_counter()
for _ in range(6): next(it); print(round((time.perf_counter()-t)*1e3,1)); t=time.perf_counter()
pr.disable(); pstats.Stats(pr).sort_stats("tottime").print_stats(12)
l.close()
