// Teamster: its messages may be handled side by side, and some of them end in every way a message can.
#pragma once

#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/team.view.hpp>

namespace gyre_teams {

struct Teamster {
  using Handles =
      gyre::Handles<view::Work, view::Short, view::Long, view::Put, view::Hold, view::Count, view::AskForSum>;
  static constexpr bool side_by_side = true;

  uint64_t messages = 0;
  uint64_t sum = 0;
  uint64_t by_teams = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Work::Reader in, view::Done::Builder out) {
    const view::Task task = in.task();
    const uint64_t number = in.number();
    const bool last = ctx.rank() + 1 == ctx.size();
    if (task == view::Task::fail || (task == view::Task::fail_in_one_thread && last)) {
      return ctx.fail(uint32_t(number));
    }
    GYRE_CHECK(task != view::Task::check && !(task == view::Task::check_in_one_thread && last));
    if (task == view::Task::ask_whether_to_stop) out.set_stopping(ctx.should_stop());
    if (task == view::Task::grow) {
      const auto filler = out.init_filler(uint32_t(number));
      for (uint32_t k = ctx.rank(); k < filler.size(); k += ctx.size()) filler.set(k, number + k);
    }
    out.set_number(3 * number + 1);
    out.set_threads(ctx.size());
    if (task == view::Task::answer) out.set_counted(gyre::sum(ctx, uint32_t(1)));
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Short::Reader in, view::ShortDone::Builder out) {
    if (in.number() % 31 == 0) return ctx.fail(uint32_t(in.number()));
    out.set_value(64 * in.number() + ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Long::Reader in, view::Done::Builder out) {
    GYRE_CHECK(in.a() % 31 != 0);
    out.set_number(in.a() + in.b() + in.c() + in.d() + in.e() + in.f() + in.g() + in.h() + in.i() + in.j() +
                   in.k() + in.l());
    out.set_threads(ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Put::Reader in, view::Done::Builder out) {
    const auto numbers = ctx.buffer<uint64_t>(in.buffer(), in.place() + 1);
    if (ctx.status() != gyre::Status::ok) return;
    if (ctx.rank() == 0) numbers[in.place()] = 7 * in.place() + 1;
    out.set_number(in.place());
    out.set_threads(ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Hold::Reader in, view::Done::Builder out) {
    const auto flag = ctx.buffer<uint64_t>(in.buffer(), 1);
    if (ctx.status() != gyre::Status::ok) return;
#if defined(__CUDACC_RTC__)
    while (*static_cast<const volatile uint64_t*>(flag.data()) == 0) {
    }
#else
    while (__atomic_load_n(flag.data(), __ATOMIC_ACQUIRE) == 0) {
    }
#endif
    out.set_threads(ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader in) {
    GYRE_CHECK(in.number() % 97 != 0);
    if (ctx.rank() != 0) return;
    gyre::add_to(messages, uint64_t(1));
    gyre::add_to(sum, in.number());
    if (ctx.size() < 32) gyre::add_to(by_teams, uint64_t(1));
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::AskForSum::Reader, view::Sum::Builder out) {
    ctx.sync();
    out.set_messages(messages);
    out.set_sum(sum);
    out.set_by_teams(by_teams);
  }
};

}  // namespace gyre_teams
