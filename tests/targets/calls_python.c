/* Functions of an extension module that call back into Python, built without frame pointers: one
   has no frame, the other uses the frame pointer's register for something else. */
typedef struct PyObject PyObject;
extern PyObject* PyObject_CallNoArgs(PyObject* function);

static volatile long counts[6];

PyObject* call_through(PyObject* self, PyObject* function);
PyObject* call_through(PyObject* self, PyObject* function) {
  PyObject* result = PyObject_CallNoArgs(function);
  (void)self;
  ++counts[0];
  return result;
}

PyObject* call_and_count(PyObject* self, PyObject* function);
PyObject* call_and_count(PyObject* self, PyObject* function) {
  const long a = counts[0], b = counts[1], c = counts[2], d = counts[3], e = counts[4],
             f = counts[5];
  PyObject* result = PyObject_CallNoArgs(function);
  (void)self;
  counts[0] = a + b;
  counts[1] = b + c;
  counts[2] = c + d;
  counts[3] = d + e;
  counts[4] = e + f;
  counts[5] = f + a + 1;
  return result;
}
