import socket,threading,struct,time,sys
out=open(sys.argv[1],'w',1)
def call():
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',9998))
    while True:
        d=s.recv(2000); n,t=struct.unpack('!Qd',d[:16]); out.write(f'{n} {time.monotonic()-t}\n')
threading.Thread(target=call,daemon=True).start()
l=socket.socket(); l.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); l.bind(('',9999)); l.listen(9)
def eat(c):
    try:
        while c.recv(65536): pass
    except OSError: pass
while True: threading.Thread(target=eat,args=(l.accept()[0],),daemon=True).start()
