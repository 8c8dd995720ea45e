import torch, time, cProfile, pstats
from torch.utils.data import DataLoader as T, TensorDataset
from stoker.loader import DataLoader as S
ds=TensorDataset(torch.randn(50000,10),torch.arange(50000))
for C in (T,S,T,S):
    l=C(ds,batch_size=256)
    for _ in range(2):
        t=time.perf_counter(); n=0
        for b in l: n+=1
        print(C.__module__,(time.perf_counter()-t)/n*1e6)
l=S(ds,batch_size=256)
pr=cProfile.Profile(); pr.enable(); list(l); pr.disable(); pstats.Stats(pr).sort_stats("tottime").print_stats(8)
