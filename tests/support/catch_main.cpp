// The main function of a test executable, for Catch2 version 2; version 3 brings one in a library.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
