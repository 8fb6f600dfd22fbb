# load.py SECONDS: two uploads (marked as class 1:10 of lab.sh) and a call of 172 bytes each 20 ms.
import socket,sys,time,threading,struct
def connect():
    for _ in range(100):    # the server may still be starting
        try: return socket.create_connection(('server',9999))
        except OSError: time.sleep(.1)
    sys.exit('no server')
first=connect(); end=time.time()+float(sys.argv[1])
def go(s):
    s.setsockopt(socket.SOL_SOCKET,socket.SO_PRIORITY,0x10010)
    s.settimeout(1); b=b'x'*16384
    while time.time()<end:
        try: s.send(b)
        except socket.timeout: pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii',1,0)); s.close()
def call():
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('server',9998)); n=0; due=time.monotonic()
    while time.time()<end:
        s.send(struct.pack('!Qd',n,time.monotonic()).ljust(172,b'.')); n+=1; due+=.02
        time.sleep(max(0,due-time.monotonic()))
t=[threading.Thread(target=go,args=(s,)) for s in (first,connect())]+[threading.Thread(target=call)]
[x.start() for x in t]; [x.join() for x in t]
time.sleep(2)
