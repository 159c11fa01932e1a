"""Lower the autogroups of helpers' processes, raise those of fresh runs."""
import os,time,sys
end=time.time()+float(sys.argv[1])
low=("/work/w_trim","/work/w_series","/work/w_more")
while time.time()<end:
    for p in os.listdir("/proc"):
        if not p.isdigit(): continue
        try:
            cwd=os.readlink(f"/proc/{p}/cwd")
            g=open(f"/proc/{p}/autogroup").read()
            want=" nice 19" if cwd.startswith(low) else " nice -5" if cwd.startswith(("/work/fresh","/work/run","/work/w_left","/work/main")) else None
            if want and not g.strip().endswith(want.strip()):
                open(f"/proc/{p}/autogroup","w").write(want.split()[-1])
        except (OSError,ValueError): pass
    time.sleep(5)
