// Messages that a program cannot send: a mistake for each value of MISTAKE, none for 0. See
// tests/device/mistakes.hpp.
#include <gyre/gyre.hpp>
#include <support/actors/rally.official.hpp>
#include <support/actors/rally_protocols.hpp>
#if MISTAKE != 4
#include <support/actors/pong.hpp>
#endif

#include <vector>

using namespace gyre;
using namespace gyre_rally;

void send(Client client) {
#if MISTAKE == 1
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address has no handler for the message: add on()
  (void)client.tell<Rest>(Address<Pong>{1}, [](Rest::Builder) {});
#elif MISTAKE == 2
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address has no handler for the message: add on()
  (void)client.ask<Rest>(Address<Pong>{1}, [](Rest::Builder) {});
#elif MISTAKE == 3
  // names: gyre_rally::Pong, gyre_rally::view::Ball
  // says: the actor's handler of the message has no response: tell the actor instead of asking it
  (void)client.ask<Ball>(Address<Pong>{1}, [](Ball::Builder) {});
#elif MISTAKE == 4
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address is only declared here, and its protocol does not list the message
  (void)client.tell<Rest>(Address<Pong>{1}, [](Rest::Builder) {});
#elif MISTAKE == 5
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address has no handler for the message: add on()
  std::vector<Future<Reply<Score> > > futures(3);
  (void)client.ask_many<Rest>(Address<Pong>{1}, futures, [](size_t, Rest::Builder) {});
#elif MISTAKE == 6
  // names: gyre_rally::Pong, gyre_rally::view::Rest
  // says: the actor at that address has no handler for the message: add on()
  (void)client.tell_many<Rest>(Address<Pong>{1}, 3, [](size_t, Rest::Builder) {});
#else
  (void)client.tell<Ball>(Address<Ping>{1}, [](Ball::Builder) {});  // known by its protocol alone
  (void)client.ask<ScoreRequest>(Address<Ping>{1}, [](ScoreRequest::Builder) {}).get().value()->getStrokes();
  (void)client.ask<ScoreRequest, Score>(NamedAddress{"gyre_rally::Ping", 1}, [](ScoreRequest::Builder) {});
#endif
}
