import sys, time; sys.path.insert(0,".scratch")
import q, torch
from stoker.loader import DataLoader as S
from torch.utils.data import DataLoader as T
def go(C,ds,k,s):
    l=C(ds,**k); it=iter(l); t0=time.perf_counter(); n=0
    while time.perf_counter()-t0<s: next(it); n+=1
    dt=(time.perf_counter()-t0)/n*1e6
    if C is S: print("   ", round(dt), l.stats(), l._feeder.engine.pace.window(), l._feeder.engine.pace.row_cost_ns)
    del it,l
for w in ["tok","u8","f32"]:
    ds,k=q.mk(w)
    for r in range(3):
        if len(sys.argv)>1: go(T,ds,k,0.9)
        go(S,ds,k,0.9)
