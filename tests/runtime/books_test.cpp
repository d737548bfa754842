#include <gyre/runtime/books.hpp>

#include "support/catch.hpp"

using gyre::Books;

TEST_CASE("books balance when every accepted message has one outcome") {
  Books books;
  CHECK(books.balanced());
  books.asks = {.accepted = 11,
                .answered = 5,
                .error_replies = 2,
                .timed_out = 2,
                .dead_letters = 1,
                .cancelled = 1,
                .late_replies = 0};
  books.tells = {.accepted = 3, .processed = 2, .dead_letters = 1};
  CHECK(books.balanced());
  books.asks.late_replies = 4;  // each of those given up may still be answered
  CHECK(books.balanced());
}

TEST_CASE(
    "books do not balance with a message in flight, one counted twice, a reply come twice, or a corrupt "
    "slot") {
  Books books;
  books.asks.accepted = 1;
  CHECK_FALSE(books.balanced());
  books.asks.answered = 2;
  CHECK_FALSE(books.balanced());
  books.asks.answered = 1;
  CHECK(books.balanced());
  books.asks.late_replies = 1;
  CHECK_FALSE(books.balanced());
  books.asks.late_replies = 0;
  books.tells.accepted = 1;
  CHECK_FALSE(books.balanced());
  books.tells.processed = 1;
  books.corrupt_slots = 1;
  CHECK_FALSE(books.balanced());
}
