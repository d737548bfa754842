// Teamster: its messages may be handled side by side, and some of them end in every way a message can.
#pragma once

#include <gyre/device/context.hpp>
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
    const view::Task task = in.getTask();
    const uint64_t number = in.getNumber();
    const bool last = ctx.rank() + 1 == ctx.size();
    if (task == view::Task::FAIL || (task == view::Task::FAIL_IN_ONE_THREAD && last)) {
      return ctx.fail(uint32_t(number));
    }
    GYRE_CHECK(task != view::Task::CHECK && !(task == view::Task::CHECK_IN_ONE_THREAD && last));
    if (task == view::Task::ASK_WHETHER_TO_STOP) out.setStopping(ctx.should_stop());
    if (task == view::Task::GROW) {
      const auto filler = out.initFiller(uint32_t(number));
      for (uint32_t k = ctx.rank(); k < filler.size(); k += ctx.size()) filler.set(k, number + k);
    }
    out.setNumber(3 * number + 1);
    out.setThreads(ctx.size());
    if (task == view::Task::ANSWER) out.setCounted(gyre::sum(ctx, uint32_t(1)));
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Short::Reader in, view::ShortDone::Builder out) {
    if (in.getNumber() % 31 == 0) return ctx.fail(uint32_t(in.getNumber()));
    out.setValue(64 * in.getNumber() + ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Long::Reader in, view::Done::Builder out) {
    GYRE_CHECK(in.getA() % 31 != 0);
    out.setNumber(in.getA() + in.getB() + in.getC() + in.getD() + in.getE() + in.getF() + in.getG() +
                  in.getH() + in.getI() + in.getJ() + in.getK() + in.getL());
    out.setThreads(ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Put::Reader in, view::Done::Builder out) {
    const auto numbers = ctx.buffer<uint64_t>(in.getBuffer(), in.getPlace() + 1);
    if (ctx.status() != gyre::Status::ok) return;
    if (ctx.rank() == 0) numbers[in.getPlace()] = 7 * in.getPlace() + 1;
    out.setNumber(in.getPlace());
    out.setThreads(ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Hold::Reader in, view::Done::Builder out) {
    const auto flag = ctx.buffer<uint64_t>(in.getBuffer(), 1);
    if (ctx.status() != gyre::Status::ok) return;
#if defined(__CUDACC_RTC__)
    while (*static_cast<const volatile uint64_t*>(flag.data()) == 0) {
    }
#else
    while (__atomic_load_n(flag.data(), __ATOMIC_ACQUIRE) == 0) {
    }
#endif
    out.setThreads(ctx.size());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader in) {
    GYRE_CHECK(in.getNumber() % 97 != 0);
    if (ctx.rank() != 0) return;
    gyre::add_to(messages, uint64_t(1));
    gyre::add_to(sum, in.getNumber());
    if (ctx.size() < 32) gyre::add_to(by_teams, uint64_t(1));
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::AskForSum::Reader, view::Sum::Builder out) {
    ctx.sync();
    out.setMessages(messages);
    out.setSum(sum);
    out.setByTeams(by_teams);
  }
};

}  // namespace gyre_teams
