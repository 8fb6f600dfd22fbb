import socket,sys,time,threading,struct
end=time.time()+float(sys.argv[1])
def go():
    s=socket.create_connection(('server',9999)); s.setsockopt(socket.SOL_SOCKET,socket.SO_PRIORITY,0x10010)
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
t=[threading.Thread(target=f) for f in (go,go,call)]; [x.start() for x in t]; [x.join() for x in t]
time.sleep(2)
