#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER  // version 2 is all in its header: this is where it is compiled
#include <catch2/catch.hpp>
#endif

#include "support/run_tests.hpp"

int gyre_test::run_tests(int argc, char** argv) { return Catch::Session().run(argc, argv); }
