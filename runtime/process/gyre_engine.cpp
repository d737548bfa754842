// The program gyre-engine.
#include <unistd.h>
#include <gyre/runtime/process/engine_service.hpp>

// The driver has nothing left to do at exit, and might wait for workers that never end.
int main(int count, char** arguments) { _exit(gyre::process::serve_engine(count, arguments)); }
