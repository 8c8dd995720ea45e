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
def work(job,h,l):
    import resource; ru=resource.getrusage(resource.RUSAGE_SELF); log(f"work {h.worker} minflt {ru.ru_minflt}"); _w(job,h,l)
F.work=work
_a=W.Worker.answer
def ans(self,t): log(f"  answer {self._number} {t.ticket} {t.start}"); r=_a(self,t); log(f"  done {self._number}"); return r
W.Worker.answer=ans
import resource
def wrap(mod,name,label):
    f=getattr(mod,name)
    def g(*a,**k):
        t=time.perf_counter(); r0=resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        r=f(*a,**k)
        log(f"      {label} {(time.perf_counter()-t)*1e3:.2f} ms, {resource.getrusage(resource.RUSAGE_SELF).ru_minflt-r0} faults"); return r
    setattr(mod,name,g)
wrap(W,"seed_as_torch","seed"); wrap(W,"use_heap_in_default_collate","heap"); wrap(W.torch,"set_num_threads","threads"); wrap(W.Worker,"open","open"); wrap(W.Worker,"__init__","init"); wrap(W.signal_handling,"_set_worker_signal_handlers","sig"); wrap(F,"end_with_parent","pdeath"); wrap(F,"set_process_name","name"); wrap(W.Worker,"_made","made")
class D(torch.utils.data.Dataset):
    def __len__(s): return 3200
    def __getitem__(s,i): time.sleep(.01); return torch.full((3,),i)
l=DataLoader(D(),batch_size=32,num_workers=8)
T0=time.perf_counter(); it=iter(l); log("iter"); next(it); log("first")
l.close()
