#!/usr/bin/env python3
"""A deliberately broken store: nodes forward writes to each other a tenth of a second late.

    consistory test --command ./broken_store.py --system ./broken_store.py --nodes n1,n2

With a verb this file is the script that starts nodes, without one it is a client.
"""
import json, os, socket, socketserver, sys, threading, time

PORT, DELAY, data = 7000, 0.1, {}
NODES = os.environ.get("CONSISTORY_NODES", "").split(",")


def ask(address, message):
    with socket.create_connection((address, PORT), 1) as connection:
        connection.sendall((json.dumps(message) + "\n").encode())
        return json.loads(connection.makefile().readline())


def forward(message):
    time.sleep(DELAY)
    for node in NODES:
        if node != os.environ["CONSISTORY_ADDRESS"]:
            ask(node, {**message, "op": "copy"})


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        message = json.loads(self.rfile.readline())
        if message["op"] != "read":
            data[message["key"]] = message["value"]
        if message["op"] == "write":
            threading.Thread(target=forward, args=(message,), daemon=True).start()
        self.wfile.write((json.dumps(data.get(message["key"])) + "\n").encode())


def serve():
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer(("", PORT), Handler).serve_forever()


def client():
    node = json.loads(sys.stdin.readline())["node"]
    print('{"type":"ok"}', flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request["id"], "type": "ok"}
        try:
            answer["value"] = ask(node, request)
        except ConnectionRefusedError as error:  # nothing was sent
            answer.update(type="fail", error=str(error))
        except OSError as error:
            answer.update(type="info", error=str(error))
        print(json.dumps(answer), flush=True)


if len(sys.argv) == 1:
    client()
elif sys.argv[1] == "start":  # the other verbs have nothing to do: a node is killed with this process
    serve()
