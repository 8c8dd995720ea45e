import torch, time, sys, json
from torch.utils.data import DataLoader as T
from stoker.loader import DataLoader as S
class L(torch.utils.data.Dataset):
    def __init__(s,xs,n): s.xs=xs; s.n=n
    def __len__(s): return s.n
    def __getitem__(s,i): return s.xs[i%len(s.xs)]
def cc(rows):
    return {"image":torch.stack([r["image"] for r in rows]),"label":torch.tensor([r["label"] for r in rows]),"id":[r["id"] for r in rows]}
def mk(which):
    k={}
    if which=="tok": ds=L([torch.zeros(512,dtype=torch.int64) for _ in range(4096)],10**7); bs=32
    if which=="u8": ds=L([torch.zeros(3,224,224,dtype=torch.uint8) for _ in range(512)],10**7); bs=64
    if which=="f32": ds=L([torch.zeros(3,224,224) for _ in range(512)],10**7); bs=64
    if which=="big": ds=L([torch.zeros(15*2**20//4) for _ in range(16)],10**7); bs=4
    if which in("dict","coll"): ds=L([{"image":torch.zeros(3,224,224,dtype=torch.uint8),"label":i,"id":f"s{i}"} for i in range(512)],10**7); bs=64
    if which=="coll": k=dict(collate_fn=cc)
    return ds,dict(batch_size=bs,num_workers=2,persistent_workers=True,**k)
def go(C,ds,k,s):
    l=C(ds,**k); it=iter(l); t0=time.perf_counter()
    while time.perf_counter()-t0<s*0.5: next(it)
    n=0; t0=time.perf_counter()
    while time.perf_counter()-t0<s: next(it); n+=1
    dt=(time.perf_counter()-t0)/n*1e6
    del it,l
    return dt
if __name__=="__main__":
    s=float(sys.argv[1]); reps=int(sys.argv[2])
    for w in sys.argv[3:] or ["tok","u8","f32","big","dict","coll"]:
        ds,k=mk(w); r=[]
        for _ in range(reps):
            a=go(T,ds,k,s); b=go(S,ds,k,s); r.append((a,b))
        r.sort(key=lambda x:x[0]/x[1]); print(w,"ratios",[round(a/b,1) for a,b in r],"torch us",[round(a) for a,b in r],"ours us",[round(b) for a,b in r],flush=True)
