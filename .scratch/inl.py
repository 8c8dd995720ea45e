import torch, time, statistics as st, sys
from torch.utils.data import DataLoader as T, TensorDataset
from stoker.loader import DataLoader as S
class Work(torch.utils.data.Dataset):
    def __init__(s,n,us): s.n=n; s.us=us
    def __len__(s): return s.n
    def __getitem__(s,i):
        e=time.perf_counter()+s.us*1e-6
        while time.perf_counter()<e: pass
        return i
class It(torch.utils.data.IterableDataset):
    def __iter__(s): return iter(range(20000))
class Py(torch.utils.data.Dataset):
    def __len__(s): return 20000
    def __getitem__(s,i): return {"a":i,"b":float(i),"s":"x"}
cases={"list bs1":(list(range(4000)),dict(batch_size=1)),"list bs8":(list(range(20000)),dict(batch_size=8)),"list bs64":(list(range(64000)),dict(batch_size=64)),
"Tensor bs32 sh":(TensorDataset(torch.randn(20000,10),torch.arange(20000)),dict(batch_size=32,shuffle=True)),"Tensor bs256":(TensorDataset(torch.randn(50000,10),torch.arange(50000)),dict(batch_size=256)),
"work 10us x32":(Work(6400,10),dict(batch_size=32)),"iter bs32":(It(),dict(batch_size=32)),"none":(list(range(5000)),dict(batch_size=None)),"py bs32":(Py(),dict(batch_size=32))}
def run(l):
    t=time.perf_counter(); n=0
    for b in l: n+=1
    return (time.perf_counter()-t)/n*1e6
for w in (0,2):
  for name,(ds,k) in cases.items():
    a=T(ds,num_workers=w,persistent_workers=w>0,**k); b=S(ds,num_workers=w,persistent_workers=w>0,**k)
    run(a); run(b); ra=[];rb=[]
    for _ in range(7 if w==0 else 3): ra.append(run(a)); rb.append(run(b))
    print(w,f"{name:16s} torch {st.median(ra):8.1f} us ours {st.median(rb):8.1f} us ratio {st.median(x/y for x,y in zip(ra,rb)):.2f}",flush=True)
    del a,b
