// What the actors share.
#pragma once

#include <gyre/device/platform.hpp>
#include <shop/units.view.hpp>
#include <till/schemas/rounding.view.hpp>

namespace till {

GYRE_DEVICE inline uint32_t pieces(uint32_t amount, shop::view::Unit unit) {
  return unit == shop::view::Unit::DOZEN ? 12 * amount : amount;
}

GYRE_DEVICE inline int32_t rounded(int32_t number, view::Rounding rounding) {
  return rounding == view::Rounding::TENS ? (number + 5) / 10 * 10 : number;
}

}  // namespace till
