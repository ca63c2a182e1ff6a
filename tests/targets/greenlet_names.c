/* Functions with the names by which greenlet's module is understood, called _greenlet.names.so. */
extern volatile int pyinject_sink;
volatile int pyinject_sink;

#define FUNCTION(name) \
  void name(void);     \
  void name(void) {    \
    pyinject_sink = 1; \
    pyinject_sink = 2; \
    pyinject_sink = 3; \
  }

FUNCTION(_ZN8greenlet12UserGreenlet13g_initialstubEPv)
FUNCTION(_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object)
FUNCTION(_ZN8greenlet12UserGreenlet8g_switchEv)
FUNCTION(_ZN8greenlet12MainGreenlet8g_switchEv)
FUNCTION(_ZN8greenlet8Greenlet13g_switchstackEv)
FUNCTION(other_function)
