/* Stands in for a CUDA runtime and driver: writes the calls made, one a line, to $PROFILER_OUTPUT. */
#include <stdio.h>
#include <stdlib.h>

static int said(const char *call, int result) {
  FILE *out = fopen(getenv("PROFILER_OUTPUT"), "a");
  if (out) {
    fprintf(out, "%s\n", call);
    fclose(out);
  }
  return result;
}

#ifdef DRIVER
int cuCtxSynchronize(void) { return said("cuCtxSynchronize", 0); }
int cuProfilerStart(void) { return said("cuProfilerStart", 0); }
int cuProfilerStop(void) { return said("cuProfilerStop", 0); }
#else
int cudaDeviceSynchronize(void) { return said("cudaDeviceSynchronize", 0); }
int cudaProfilerStart(void) { return said("cudaProfilerStart", getenv("NO_START") ? 35 : 0); }
int cudaProfilerStop(void) { return said("cudaProfilerStop", 0); }
#endif
