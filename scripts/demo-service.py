"""An order service, as a target for scripts/demo: started without any flag, it serves until it is killed.

A client thread plays the customers and sends JSON; the main thread validates, prices and answers.
"""

import json
import queue
import random
import re
import threading
import time
from dataclasses import dataclass, field

PRICES = {f"SKU-{n:04d}": 100 + n * 37 % 9900 for n in range(400)}
PLACEHOLDER = re.compile(r"\{(\w+)\}")
LETTER = "Dear {name}, your {count} items cost {total} cents and leave {depot} {day}. Yours, {shop}"


@dataclass
class Line:
    sku: str
    count: int

    def price(self):
        gross = PRICES[self.sku] * self.count
        return gross - self.rebate(gross)

    def rebate(self, gross):
        return gross // 20 if self.count >= 5 else 0


@dataclass
class Order:
    customer: str
    lines: list = field(default_factory=list)

    @classmethod
    def from_json(cls, text):
        data = json.loads(text)
        return cls(data["customer"], [Line(**line) for line in data["lines"]])

    def valid_lines(self):
        for line in self.lines:
            if line.sku in PRICES and line.count > 0:
                yield line


class Shop:
    def __init__(self):
        self.revenue = 0
        self.best_sellers = {}

    def handle(self, text):
        order = Order.from_json(text)
        total = self.total(order)
        self.count_sales(order)
        self.revenue += total
        return json.dumps({"letter": self.letter(order, total), "top": self.top(5)})

    def total(self, order):
        return sum(line.price() for line in order.valid_lines())

    def count_sales(self, order):
        for line in order.valid_lines():
            self.best_sellers[line.sku] = self.best_sellers.get(line.sku, 0) + line.count

    def popularity(self, sku):
        return self.best_sellers[sku] * 10 - PRICES[sku] // 1000

    def top(self, count):
        # A callback through C: sorted() calls popularity().
        return sorted(self.best_sellers, key=self.popularity, reverse=True)[:count]

    def letter(self, order, total):
        values = {"name": order.customer, "count": len(order.lines), "total": total, "depot": "north"}

        def fill_in(match):
            return str(values.get(match[1], "soon"))

        # Another callback through C: re.sub() calls fill_in().
        return PLACEHOLDER.sub(fill_in, LETTER)


def make_order(rng):
    lines = [{"sku": f"SKU-{rng.randrange(410):04d}", "count": rng.randrange(8)} for _ in range(40)]
    return json.dumps({"customer": f"customer {rng.randrange(1000)}", "lines": lines})


def customers(requests):
    rng = random.Random(1)
    while True:
        for _ in range(50):
            requests.put(make_order(rng))
        time.sleep(0.005)


def serve(requests):
    shop = Shop()
    while True:
        shop.handle(requests.get())


def name_process(name):
    """What ps, top and perf call this process; services like to be told apart."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write(name)
    except OSError:
        pass


def main():
    name_process("order-service")
    requests = queue.Queue(maxsize=100)
    threading.Thread(target=customers, args=(requests,), daemon=True).start()
    print("ready", flush=True)
    serve(requests)


if __name__ == "__main__":
    main()
