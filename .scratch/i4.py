import torch, time, gc
from torch.utils.data import DataLoader as T, TensorDataset
from stoker.loader import DataLoader as S
ds=TensorDataset(torch.randn(50000,10),torch.arange(50000))
L={C:C(ds,batch_size=256) for C in (T,S)}
def st(): return [s["collections"] for s in gc.get_stats()]
for r in range(6):
  for C in (T,S):
    a=st()
    for b in L[C]: pass
    print(C.__module__[:6],[y-x for x,y in zip(a,st())], gc.get_count())
