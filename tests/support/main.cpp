// The main function of a test executable that has no other.
#include "support/run_tests.hpp"

int main(int argc, char** argv) { return gyre_test::run_tests(argc, argv); }
