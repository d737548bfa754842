// The Python extension gyre._ask: the inner call of a prepared ask, which gyre/_ask_by_ctypes.py does in
// Python.
//
// It is compiled against Python's stable interface (abi3), so that one file serves Python 3.9 and later. It
// has no library of Gyre's linked: bind() takes the addresses of the functions from the package, which has
// loaded libgyre.
//
// Who holds the interpreter's lock. A round trip takes microseconds; handing the lock to another thread and
// taking it back can take as long, and up to the 5 ms switch interval. So the lock is kept while the request
// is sent and for `kept_ns` of waiting, and released for longer waits.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <structmember.h>

#include <gyre/runtime/c/gyre.h>

#include <cstring>

namespace {

constexpr int64_t kept_ns = 20'000;
// Signals are looked for as often. The same as Client.ask's.
constexpr int64_t between_signals_ns = 50'000'000;
// Copying more than this takes longer than handing the lock over.
constexpr size_t large_bytes = 65536;

// Functions of the library that the package loaded. Set by bind(), before any Ask is made.
struct Library {
  decltype(&gyre_ask) ask;
  decltype(&gyre_call_wait) call_wait;
  decltype(&gyre_call_reply) call_reply;
  decltype(&gyre_call_release) call_release;
};
Library library;

struct Names {
  PyObject *reply, *grow, *failed, *in_flight, *idle;
};
Names names;

struct Ask {
  PyObject_HEAD gyre_runtime runtime;
  PyObject* actor;  // bytes
  uint64_t key;
  uint64_t request;
  const void* body;
  size_t body_size;
  gyre_send_options options;
  void* reply;  // memory of the caller's, which grow() replaces
  size_t reply_capacity;
  Py_ssize_t reply_size;  // -1: there is no reply
  uint64_t generation;    // of the reply
  gyre_call call;         // 0: none in flight
  bool busy;              // a thread is in send() or wait(), perhaps without the lock
};

// Sets an exception by a method of the Python class, which always raises.
void raise_by(Ask* self, PyObject* method, PyObject* argument = nullptr) {
  PyObject* const result =
      PyObject_CallMethodObjArgs(reinterpret_cast<PyObject*>(self), method, argument, nullptr);
  Py_XDECREF(result);
}
void raise_failure(Ask* self, gyre_status status) {
  PyObject* const number = PyLong_FromLong(status);
  if (number == nullptr) return;
  raise_by(self, names.failed, number);
  Py_DECREF(number);
}

gyre_status send_as(Ask* self, int32_t when_full) {
  self->options.when_full = when_full;
  return library.ask(self->runtime, PyBytes_AsString(self->actor), self->key, self->request, self->body,
                     self->body_size, &self->options, &self->call);
}

bool is_full(gyre_status status) {
  return status == GYRE_RING_FULL || status == GYRE_CALL_TABLE_FULL || status == GYRE_ARENA_FULL;
}

bool send(Ask* self) {
  if (self->call != 0 || self->busy) {
    raise_by(self, names.in_flight);
    return false;
  }
  gyre_status status = GYRE_RING_FULL;
  if (self->body_size <= large_bytes) status = send_as(self, GYRE_WHEN_FULL_REFUSE);
  if (is_full(status)) {
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS status = send_as(self, GYRE_WHEN_FULL_WAIT);
    Py_END_ALLOW_THREADS self->busy = false;
  }
  if (status == GYRE_OK) return true;
  self->call = 0;
  raise_failure(self, status);
  return false;
}

void abandon(Ask* self) {
  if (self->call != 0) library.call_release(self->call);
  self->call = 0;
}

// Copies the outcome of the call into the caller's memory, and releases the call.
bool collect(Ask* self) {
  const void* body = nullptr;
  size_t size = 0;
  const gyre_status status = library.call_reply(self->call, &body, &size);
  ++self->generation;
  self->reply_size = -1;
  bool good = status == GYRE_OK;
  if (!good) {
    raise_failure(self, status);
  } else if (size > self->reply_capacity) {
    PyObject* const needed = PyLong_FromSize_t(size);
    PyObject* const grown = needed == nullptr ? nullptr
                                              : PyObject_CallMethodObjArgs(reinterpret_cast<PyObject*>(self),
                                                                           names.grow, needed, nullptr);
    Py_XDECREF(needed);
    Py_XDECREF(grown);
    good = grown != nullptr;
  }
  if (good) {
    if (size != 0) std::memcpy(self->reply, body, size);
    self->reply_size = Py_ssize_t(size);
  }
  abandon(self);
  return good;
}

// Waits until the outcome is there. On an exception the call stays in flight.
bool wait(Ask* self) {
  gyre_status status = library.call_wait(self->call, kept_ns);
  while (status == GYRE_NOT_READY) {
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS status = library.call_wait(self->call, between_signals_ns);
    Py_END_ALLOW_THREADS self->busy = false;
    if (status == GYRE_NOT_READY && PyErr_CheckSignals() != 0) return false;
  }
  if (status == GYRE_OK) return true;
  raise_failure(self, status);
  return false;
}

PyObject* reply_of(Ask* self) { return PyObject_GetAttr(reinterpret_cast<PyObject*>(self), names.reply); }

PyObject* ask_call(PyObject* object, PyObject* arguments, PyObject* keywords) {
  Ask* const self = reinterpret_cast<Ask*>(object);
  if (PyTuple_Size(arguments) != 0 || (keywords != nullptr && PyDict_Size(keywords) != 0)) {
    PyErr_SetString(PyExc_TypeError,
                    "a prepared ask takes no arguments; set the fields of its request before");
    return nullptr;
  }
  if (!send(self)) return nullptr;
  if (!wait(self)) {
    abandon(self);
    return nullptr;
  }
  return collect(self) ? reply_of(self) : nullptr;
}

PyObject* ask_send(PyObject* object, PyObject*) {
  if (!send(reinterpret_cast<Ask*>(object))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* ask_wait(PyObject* object, PyObject*) {
  Ask* const self = reinterpret_cast<Ask*>(object);
  if (self->call == 0 || self->busy) {
    raise_by(self, self->busy ? names.in_flight : names.idle);
    return nullptr;
  }
  return wait(self) && collect(self) ? reply_of(self) : nullptr;
}

PyObject* ask_collect(PyObject* object, PyObject*) {
  Ask* const self = reinterpret_cast<Ask*>(object);
  if (self->call == 0) {
    raise_by(self, names.idle);
    return nullptr;
  }
  return collect(self) ? reply_of(self) : nullptr;
}

PyObject* ask_abandon(PyObject* object, PyObject*) {
  abandon(reinterpret_cast<Ask*>(object));
  Py_RETURN_NONE;
}

PyObject* ask_set_up(PyObject* object, PyObject* arguments) {
  Ask* const self = reinterpret_cast<Ask*>(object);
  PyObject* actor = nullptr;
  unsigned long long runtime, key, request, body, size;
  long long timeout;
  unsigned int max_reply_bytes;
  if (!PyArg_ParseTuple(arguments, "KSKKKKLI", &runtime, &actor, &key, &request, &body, &size, &timeout,
                        &max_reply_bytes)) {
    return nullptr;
  }
  Py_INCREF(actor);
  Py_XDECREF(self->actor);
  self->actor = actor;
  self->runtime = runtime;
  self->key = key;
  self->request = request;
  self->body = reinterpret_cast<const void*>(static_cast<uintptr_t>(body));
  self->body_size = size;
  self->options = {sizeof(gyre_send_options), GYRE_BODY, GYRE_WHEN_FULL_REFUSE, timeout, 0,
                   max_reply_bytes,           0};
  self->reply_size = -1;
  Py_RETURN_NONE;
}

PyObject* ask_set_reply_memory(PyObject* object, PyObject* arguments) {
  Ask* const self = reinterpret_cast<Ask*>(object);
  unsigned long long address, capacity;
  if (!PyArg_ParseTuple(arguments, "KK", &address, &capacity)) return nullptr;
  self->reply = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  self->reply_capacity = capacity;
  Py_RETURN_NONE;
}

void ask_dealloc(PyObject* object) {
  Ask* const self = reinterpret_cast<Ask*>(object);
  PyTypeObject* const type = Py_TYPE(object);
  abandon(self);
  Py_XDECREF(self->actor);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

PyMethodDef ask_methods[] = {
    {"send", ask_send, METH_NOARGS, "Sends the request, and does not wait for the reply."},
    {"wait", ask_wait, METH_NOARGS, "Waits for the reply to what send() sent, and returns it."},
    {"_collect", ask_collect, METH_NOARGS, nullptr},
    {"_abandon", ask_abandon, METH_NOARGS, nullptr},
    {"_set_up", ask_set_up, METH_VARARGS, nullptr},
    {"_set_reply_memory", ask_set_reply_memory, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef ask_members[] = {
    {"_key", T_ULONGLONG, offsetof(Ask, key), 0, nullptr},
    {"_call", T_ULONGLONG, offsetof(Ask, call), READONLY, nullptr},
    {"_size", T_PYSSIZET, offsetof(Ask, reply_size), READONLY, nullptr},
    {"_generation", T_ULONGLONG, offsetof(Ask, generation), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyType_Slot ask_slots[] = {
    {Py_tp_call, slot(ask_call)},
    {Py_tp_methods, ask_methods},
    {Py_tp_members, ask_members},
    {Py_tp_dealloc, slot(ask_dealloc)},
    {0, nullptr},
};
PyType_Spec ask_spec = {"gyre._ask.Ask", sizeof(Ask), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, ask_slots};

PyObject* bind(PyObject*, PyObject* arguments) {
  unsigned long long ask, wait, reply, release;
  if (!PyArg_ParseTuple(arguments, "KKKK", &ask, &wait, &reply, &release)) return nullptr;
  library.ask = reinterpret_cast<decltype(&gyre_ask)>(static_cast<uintptr_t>(ask));
  library.call_wait = reinterpret_cast<decltype(&gyre_call_wait)>(static_cast<uintptr_t>(wait));
  library.call_reply = reinterpret_cast<decltype(&gyre_call_reply)>(static_cast<uintptr_t>(reply));
  library.call_release = reinterpret_cast<decltype(&gyre_call_release)>(static_cast<uintptr_t>(release));
  Py_RETURN_NONE;
}

PyMethodDef module_functions[] = {
    {"bind", bind, METH_VARARGS,
     "Takes the addresses of gyre_ask, gyre_call_wait, gyre_call_reply and gyre_call_release."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "gyre._ask",
                                 "The inner call of a prepared ask.",
                                 -1,
                                 module_functions,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

bool intern(PyObject*& name, const char* text) {
  name = PyUnicode_InternFromString(text);
  return name != nullptr;
}

}  // namespace

PyMODINIT_FUNC PyInit__ask() {
  if (!intern(names.reply, "reply") || !intern(names.grow, "_grow") || !intern(names.failed, "_failed") ||
      !intern(names.in_flight, "_in_flight") || !intern(names.idle, "_idle")) {
    return nullptr;
  }
  PyObject* const module = PyModule_Create(&module_definition);
  PyObject* const type = module == nullptr ? nullptr : PyType_FromSpec(&ask_spec);
  if (type == nullptr || PyModule_AddObject(module, "Ask", type) != 0) {
    Py_XDECREF(type);
    Py_XDECREF(module);
    return nullptr;
  }
  return module;
}
