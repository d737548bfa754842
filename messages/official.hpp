// Which view belongs to which official Cap'n Proto class. Host only. capnpc-gyre writes the specialisations,
// one pair a struct, into <schema>.official.hpp.
#pragma once

namespace gyre {

/// `OfficialOf<ns::view::X>::type` is the official class ns::X. Not defined for a type that has no view.
template <class View>
struct OfficialOf;

/// `ViewOf<ns::X>::type` is the view ns::view::X of an official class.
template <class Official>
struct ViewOf;

}  // namespace gyre
