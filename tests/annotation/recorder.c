/* An NVTX tool for the tests: writes each call that a program makes as one line of a file.
 *
 * NVTX loads it by NVTX_INJECTION64_PATH and asks InitializeInjectionNvtx2 to fill its tables of
 * functions. The numbers of modules, functions and types are NVTX's (nvToolsExt.h, nvtxTypes.h):
 * they are its binary interface and do not change. The file is $RECORDER_OUTPUT; a line holds
 *   thread, call, domain, message, category, payload type, payload, result
 * parted by tabs, texts in hexadecimal.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union { uint64_t u64; int64_t i64; double f64; } payload;
  int32_t message_type;
  union { const char *text; const char *registered; } message;
} Attributes;

typedef void (*Function)(void);
typedef struct {
  size_t size;
  int (*module_functions)(int module, Function ***table, unsigned *count);
} Callbacks;

enum { CALLBACKS = 1, CORE2 = 5 };
enum { PAYLOAD_UINT64 = 1, PAYLOAD_INT64, PAYLOAD_DOUBLE };
enum { MARK = 1, START, END, PUSH, POP, CATEGORY = 8, STRING = 10, DOMAIN = 12 };

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t started;

static void hex(const char *text) {
  for (; text && *text; text++) fprintf(out, "%02x", (unsigned char)*text);
}

static void line(const char *call, const char *domain, const char *text, const Attributes *a,
                 long category, long result) {
  if (!out) return;
  fprintf(out, "%ld\t%s\t", (long)syscall(SYS_gettid), call);
  hex(domain);
  fputc('\t', out);
  hex(a && a->message_type ? a->message.text : text);
  fprintf(out, "\t%ld\t", a ? (long)a->category : category);
  switch (a ? a->payload_type : 0) {
    case PAYLOAD_UINT64: fprintf(out, "uint64\t%llu", (unsigned long long)a->payload.u64); break;
    case PAYLOAD_INT64: fprintf(out, "int64\t%lld", (long long)a->payload.i64); break;
    case PAYLOAD_DOUBLE: fprintf(out, "double\t%.17g", a->payload.f64); break;
    default: fprintf(out, "%d\t", a ? a->payload_type : 0);
  }
  fprintf(out, "\t%ld\n", result);
}

#define LOCKED(...) \
  pthread_mutex_lock(&lock); __VA_ARGS__; pthread_mutex_unlock(&lock)

static void mark(const char *d, const Attributes *a) { LOCKED(line("mark", d, 0, a, 0, 0)); }
static uint64_t start(const char *d, const Attributes *a) {
  uint64_t id;
  LOCKED(id = ++started; line("start", d, 0, a, 0, (long)id));
  return id;
}
static void end(const char *d, uint64_t id) { LOCKED(line("end", d, 0, 0, 0, (long)id)); }
static int push(const char *d, const Attributes *a) { LOCKED(line("push", d, 0, a, 0, 0)); return 0; }
static int pop(const char *d) { LOCKED(line("pop", d, 0, 0, 0, 0)); return 0; }
static void category(const char *d, uint32_t number, const char *name) {
  LOCKED(line("category", d, name, 0, number, 0));
}
static const char *string(const char *d, const char *text) {
  LOCKED(line("string", d, text, 0, 0, 0));
  return strdup(text);
}
static const char *domain(const char *name) {
  LOCKED(line("domain", name, "", 0, 0, 0));
  return strdup(name);
}

/* nvtx 0.2.12 and later ask whether a domain is enabled; NVTX's payload extension answers. */
typedef struct { size_t segment, slots; intptr_t *functions; } Segment;
typedef struct {
  uint16_t version, size, module, compatibility;
  size_t segments;
  Segment *segment;
} Module;
enum { PAYLOAD_MODULE = 2, DOMAIN_IS_ENABLED = 7 };

static uint8_t enabled(const char *d) { (void)d; return 1; }

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(Module *module) {
  if (module->module != PAYLOAD_MODULE || module->segment->slots <= DOMAIN_IS_ENABLED) return 0;
  module->segment->functions[DOMAIN_IS_ENABLED] = (intptr_t)enabled;
  return 1;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(void *(*table)(uint32_t)) {
  const Callbacks *callbacks = table(CALLBACKS);
  const char *path = getenv("RECORDER_OUTPUT");
  Function **functions;
  unsigned count;
  if (!callbacks || !callbacks->module_functions(CORE2, &functions, &count) || count <= DOMAIN)
    return 0;
  if (path) out = fopen(path, "a");
  if (out) setvbuf(out, 0, _IOLBF, 0);
  *functions[MARK] = (Function)mark;
  *functions[START] = (Function)start;
  *functions[END] = (Function)end;
  *functions[PUSH] = (Function)push;
  *functions[POP] = (Function)pop;
  *functions[CATEGORY] = (Function)category;
  *functions[STRING] = (Function)string;
  *functions[DOMAIN] = (Function)domain;
  return 1;
}
