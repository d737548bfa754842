// Carries the precompiled headers: the other source of its target has Catch2's main, and cannot.
