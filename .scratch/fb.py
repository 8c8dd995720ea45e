import time, torch, os, sys
import stoker.crew.foreman as F, stoker.crew.worker as W
from stoker.loader import DataLoader
T0=None
def log(m): os.write(2, f"{(time.perf_counter()-T0)*1e3:7.1f} {m}\n".encode())
_f=F.Foreman._fork
def fork(self,h,l):
    a=time.perf_counter(); r=_f(self,h,l); log(f"fork {h.worker} took {(time.perf_counter()-a)*1e3:.1f}"); return r
F.Foreman._fork=fork
_l=F.lead
import stoker.crew.crew as C
def lead(*a): log("lead"); _l(*a)
C.lead=lead
_r=F.Foreman.run
def run(self): log("run"); _r(self)
F.Foreman.run=run
_w=F.work
def work(job,h,l): log(f"work {h.worker}"); _w(job,h,l)
F.work=work
_a=W.Worker.answer
def ans(self,t): log(f"  answer {self._number} {t.ticket} {t.start}"); r=_a(self,t); log(f"  done {self._number}"); return r
W.Worker.answer=ans
class D(torch.utils.data.Dataset):
    def __len__(s): return 3200
    def __getitem__(s,i): time.sleep(.01); return torch.full((3,),i)
l=DataLoader(D(),batch_size=32,num_workers=8)
T0=time.perf_counter(); it=iter(l); log("iter"); next(it); log("first")
l.close()
