# Eight threads of malloc and dict churn.
def churn(seed):
    sizes = [(i * 7919 + seed * 104729) % 6000 for i in range(120)]
    kept = sum(sizes[1::2])

    def work():
        table = {}
        for i, size in enumerate(sizes):
            table[f"{seed}-{i}"] = bytes([i]) * size
        for i in range(0, len(sizes), 2):
            del table[f"{seed}-{i}"]
        expect(sum(map(len, table.values())), kept)
        for i in range(1, len(sizes), 2):
            value = table[f"{seed}-{i}"]
            expect(value.count(i), sizes[i])

    return work


torture(churn(0), [churn(seed) for seed in range(1, 8)])
