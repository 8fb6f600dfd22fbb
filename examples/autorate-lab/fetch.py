# fetch.py SECONDS: two downloads and a call from source.py; call.txt and bytes.txt as sink.py writes them.
import socket,struct,sys,threading,time
def connect():
    for _ in range(100):    # the server may still be starting
        try: return socket.create_connection(('server',9999))
        except OSError: time.sleep(.1)
    sys.exit('no server')
end=time.monotonic()+float(sys.argv[1]); total=[0]; lock=threading.Lock()
def get(s):
    s.settimeout(1)
    while time.monotonic()<end:
        try: n=len(s.recv(65536))
        except socket.timeout: continue
        with lock: total[0]+=n
def call():
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('server',9998)); s.settimeout(1); s.send(b'go')
    out=open('call.txt','w',1)
    while time.monotonic()<end:
        try: d=s.recv(2000)
        except socket.timeout: continue
        n,t=struct.unpack('!Qd',d[:16]); out.write(f'{n} {t} {time.monotonic()-t}\n')
def count():
    out=open('bytes.txt','w',1)
    while time.monotonic()<end+2: out.write(f'{time.monotonic()} {total[0]}\n'); time.sleep(.1)
t=[threading.Thread(target=get,args=(connect(),)) for _ in range(2)]+[threading.Thread(target=call),threading.Thread(target=count)]
[x.start() for x in t]; [x.join() for x in t]
