import torch, time
from torch.utils.data import DataLoader as T, TensorDataset
from stoker.loader import DataLoader as S
ds=TensorDataset(torch.randn(50000,10),torch.arange(50000))
L={C:C(ds,batch_size=256) for C in (T,S)}
import gc
for r in range(5):
  for C in (T,S):
    t0=time.perf_counter(); it=iter(L[C]); t1=time.perf_counter(); next(it); t2=time.perf_counter(); 
    ts=[]
    while True:
        a=time.perf_counter()
        try: next(it)
        except StopIteration: break
        ts.append(time.perf_counter()-a)
    ts.sort()
    print(C.__module__[:6],f"iter {1e6*(t1-t0):.0f} first {1e6*(t2-t1):.0f} median {1e6*ts[len(ts)//2]:.0f} p10 {1e6*ts[len(ts)//10]:.0f} p90 {1e6*ts[len(ts)*9//10]:.0f} sum {sum(ts)*1e3:.1f}ms")
