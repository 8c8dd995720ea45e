import sys,time,torch
sys.path.insert(0,"/work/shared/sketch"); sys.path.insert(0,".scratch")
import ring, q
class DD:
    def __init__(s,ds,n): s.ds=ds; s.n=n
    def __len__(s): return s.n
    def __getitem__(s,i): return s.ds[i]
if __name__=="__main__":
    for w in sys.argv[1:]:
        ds,k=q.mk(w); n={"tok":8000,"u8":1500,"f32":400,"big":300}[w]
        sz={"tok":32*512*8,"u8":64*3*224*224,"f32":64*3*224*224*4,"big":60*2**20}[w]
        r=ring.Ring(DD(ds,n*k["batch_size"]),k["batch_size"],2,2,sz)
        it=iter(r); 
        for _ in range(n//10): next(it)
        t=time.perf_counter(); m=0
        for b in it: m+=1
        dt=(time.perf_counter()-t)/m
        print("sketch",w,round(dt*1e6,1),"us",round(sz/dt/1e9,1),"GB/s",flush=True)
        r.close()
