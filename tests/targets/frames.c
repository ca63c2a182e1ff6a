/* Functions of several hundred bytes each, built with and without frame pointers. */
extern volatile int pyinject_sink;
volatile int pyinject_sink;

#define STEP(n) pyinject_sink = pyinject_sink * (n) + other(pyinject_sink);
#define STEPS(n) STEP(n) STEP(n + 1) STEP(n + 2) STEP(n + 3)
#define FUNCTION(name)                                                               \
  int name(int (*other)(int));                                                       \
  int name(int (*other)(int)) {                                                      \
    STEPS(1) STEPS(11) STEPS(21) STEPS(31) STEPS(41) STEPS(51) return pyinject_sink; \
  }

FUNCTION(one)
FUNCTION(two)
FUNCTION(three)
FUNCTION(four)
FUNCTION(five)
