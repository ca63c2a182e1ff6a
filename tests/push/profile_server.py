#!/usr/bin/env python3
"""A profile store for tests: reads pushes for Pyroscope, Parca and OTLP, decodes them, and answers as told.

usage: profile_server.py ANSWER...

Prints its port, then a JSON line for each request when it is read. ANSWERs are used in turn, the last one for the rest:
a status such as 200; STATUS:SECONDS, with Retry-After; close (no answer); hang (no answer, until the client gives up);
moved (a redirection); partial (OTLP's partial success: a profile is rejected); held (200 after the line "go" on stdin; prints
"answered" then). Another line on stdin replaces the answers. Ends with stdin.
"""
import base64
import gzip
import http.server
import json
import sys
import threading

import otlp_request


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value = data[at : at + size]
            assert len(value) == size
            at += size
        yield key >> 3, value


def decode_pprof(data):
    """By https://github.com/google/pprof/blob/main/proto/profile.proto."""
    all_fields = list(fields(gzip.decompress(data)))
    strings = [value.decode() for key, value in all_fields if key == 6]
    numbers = {key: value for key, value in all_fields if isinstance(value, int)}

    def name(message, key):
        return strings[dict(fields(message)).get(key, 0)]

    labels = set()
    for key, sample in all_fields:
        for inner, label in fields(sample) if key == 2 else ():
            if inner == 3 and 2 in dict(fields(label)):
                labels.add(f"{name(label, 1)}={name(label, 2)}")
    return {
        "types": [f"{name(value, 1)}/{name(value, 2)}" for key, value in all_fields if key == 1],
        "period_type": [f"{name(value, 1)}/{name(value, 2)}" for key, value in all_fields if key == 11],
        "samples": sum(key == 2 for key, _ in all_fields),
        "functions": [name(value, 2) for key, value in all_fields if key == 5],
        "sample_labels": sorted(labels),
        "time": numbers.get(9, 0),
        "comments": [strings[value] for key, value in all_fields if key == 13],
    }


class Answers:
    def __init__(self, answers):
        self.lock = threading.Lock()
        self.answers = answers

    def replace(self, answers):
        with self.lock:
            self.answers = answers

    def next(self):
        with self.lock:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        length = len(body)
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = self.server.answers.next()
        told = {
            "answer": answer,
            "path": self.path,
            "headers": {key.lower(): value for key, value in self.headers.items()},
            "length": length,
            "body": self.decode(body),
        }
        print(json.dumps(told), flush=True)
        self.give(answer)

    def decode(self, body):
        if self.headers["Content-Type"] == "application/x-protobuf":
            return otlp_request.decode_request(body)
        told = json.loads(body)
        for series in told["series"]:
            for sample in series["samples"]:
                sample["profile"] = decode_pprof(base64.b64decode(sample.pop("rawProfile"), validate=True))
        return told

    def give(self, answer):
        if answer in ("close", "hang"):
            if answer == "hang":
                self.connection.recv(1)  # ends when the client does
            self.close_connection = True
            return
        if answer == "held":
            self.server.go.wait()
            self.give("200")
            self.wfile.flush()
            print("answered", flush=True)
            return
        status, _, retry_after = answer.partition(":")
        text = b"what you sent: " + self.headers.get("Authorization", "nothing").encode()
        if status == "partial":  # ExportProfilesPartialSuccess{rejected_profiles, error_message}
            text = b"\x0a\x0c\x08\x01\x12\x08no quota"
        self.send_response({"moved": 308, "partial": 200}.get(status) or int(status))
        if status == "moved":
            self.send_header("Location", "/elsewhere")
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.answers = Answers(sys.argv[1:])
    server.go = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    for line in sys.stdin:
        if line == "go\n":
            server.go.set()
            continue
        server.answers.replace(line.split())
        print("replaced", flush=True)


if __name__ == "__main__":
    main()
