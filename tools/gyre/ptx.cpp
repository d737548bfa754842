#include "ptx.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "patterns.hpp"
#include "programs.hpp"

namespace gyre::tools {

namespace {

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// The opcode of a line of a function's body; empty for directives, labels and braces. A guard (@%p1) is not
// part of it.
std::string_view opcode_of(std::string_view line) {
  if (line.empty() || line.front() == '.' || line.front() == '{' || line.front() == '}') return {};
  if (line.front() == '@') {
    const size_t blank = line.find_first_of(" \t");
    if (blank == std::string_view::npos) return {};
    line = trimmed(line.substr(blank));
  }
  if (line.front() == '(' || line.front() == ')') return {};
  const std::string_view word = line.substr(0, line.find_first_of(" \t;"));
  if (word.empty() || word.back() == ':' || word.back() == ',' || word.front() < 'a' || word.front() > 'z')
    return {};
  if (begins(word, "param") && line.back() != ';') return {};  // of a call
  return word;
}

// The name in "(.visible) .entry NAME(" or "(.weak) .func (.param .b32 r) NAME(", whose parts may be on
// several lines: `header` is all of them.
std::string name_in(const std::string& header) {
  const Found found = search(header, "\\.(?:entry|func)\\s+(?:\\([^)]*\\)\\s*)?([A-Za-z_$][A-Za-z0-9_$]*)");
  return found.empty() ? std::string() : found[1];
}

}  // namespace

std::string_view name(OpcodeClass kind) {
  switch (kind) {
    case OpcodeClass::global:
      return "global and generic memory";
    case OpcodeClass::local:
      return "local memory";
    case OpcodeClass::shared:
      return "shared memory";
    case OpcodeClass::parameter:
      return "parameters and constants";
    case OpcodeClass::atomic:
      return "atomic operations";
    case OpcodeClass::floating:
      return "floating point";
    case OpcodeClass::integer:
      return "integers and logic";
    case OpcodeClass::move:
      return "moves and conversions";
    case OpcodeClass::branch:
      return "branches";
    case OpcodeClass::call:
      return "calls";
    case OpcodeClass::barrier:
      return "barriers and fences";
    case OpcodeClass::other:
      return "other";
  }
  return "other";
}

OpcodeClass class_of(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  const auto has = [opcode](std::string_view part) { return opcode.find(part) != std::string_view::npos; };
  const auto any = [base](std::initializer_list<std::string_view> names) {
    for (const std::string_view one : names) {
      if (base == one) return true;
    }
    return false;
  };
  if (any({"atom", "red"})) return OpcodeClass::atomic;
  if (any({"bar", "barrier", "fence", "membar", "nanosleep"})) return OpcodeClass::barrier;
  if (any({"ld", "ldu", "st", "prefetch", "prefetchu", "cp"})) {
    if (has(".local")) return OpcodeClass::local;
    if (has(".shared")) return OpcodeClass::shared;
    if (has(".param") || has(".const")) return OpcodeClass::parameter;
    return OpcodeClass::global;
  }
  if (any({"call"})) return OpcodeClass::call;
  if (any({"bra", "brx", "ret", "exit", "trap"})) return OpcodeClass::branch;
  if (any({"mov", "cvt", "cvta", "prmt", "shfl", "activemask"})) return OpcodeClass::move;
  const bool is_float = has(".f32") || has(".f64") || has(".f16") || has(".bf16");
  if (is_float) return OpcodeClass::floating;
  if (any({"add",  "sub",  "mul",  "mad",  "div",   "rem",  "and",  "or",    "xor",   "not",
           "shl",  "shr",  "shf",  "setp", "set",   "selp", "min",  "max",   "abs",   "neg",
           "bfe",  "bfi",  "popc", "clz",  "brev",  "lop3", "vote", "mul24", "mad24", "addc",
           "subc", "madc", "sad",  "slct", "bfind", "fns",  "dp4a", "elect", "match"})) {
    return OpcodeClass::integer;
  }
  return OpcodeClass::other;
}

std::vector<PtxFunction> parse_ptx(std::string_view ptx) {
  std::vector<PtxFunction> functions;
  PtxFunction function;
  std::string header;
  int depth = 0;
  while (!ptx.empty()) {
    std::string_view line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(ptx.size(), line.size() + 1));
    line = trimmed(line.substr(0, line.find("//")));
    if (line.empty()) continue;
    if (depth == 0) {
      if (line.find(".entry") != std::string_view::npos || line.find(".func") != std::string_view::npos) {
        header.clear();
      }
      if (line.front() != '{') {
        header += line;
        header += ' ';
        if (line.back() == ';') header.clear();  // a declaration, or a variable
        continue;
      }
      function = {};
      function.name = name_in(header);
      function.entry = header.find(".entry") != std::string::npos;
      header.clear();
      depth = 1;
      continue;
    }
    // An initialised local variable has its braces on one line.
    for (const char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) {
      if (!function.name.empty()) functions.push_back(std::move(function));
      continue;
    }
    function.body += line;
    function.body += '\n';
    if (const std::string_view opcode = opcode_of(line); !opcode.empty()) {
      ++function.instructions;
      ++function.counts[size_t(class_of(opcode))];
    }
  }
  return functions;
}

OpcodeCounts total(const std::vector<PtxFunction>& functions) {
  OpcodeCounts counts{};
  for (const PtxFunction& function : functions) {
    for (size_t n = 0; n < opcode_classes; ++n) counts[n] += function.counts[n];
  }
  return counts;
}

std::string demangled(const std::string& name) {
  const size_t begin = name.find("_Z");
  if (begin == std::string::npos) return name;
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str() + begin, nullptr, nullptr, &failed), std::free);
  return failed == 0 ? std::string(text.get()) : name;
}

FunctionReport PtxasReport::total() const {
  FunctionReport all;
  for (const auto& [function, report] : functions) {
    all.stack_bytes += report.stack_bytes;
    all.spill_store_bytes += report.spill_store_bytes;
    all.spill_load_bytes += report.spill_load_bytes;
  }
  return all;
}

std::optional<PtxasReport> read_ptxas_report(const std::string& log) {
  PtxasReport report;
  bool found_any = false;
  std::string current;
  std::istringstream lines(log);
  const auto number = [](const std::string& text) { return uint32_t(std::stoul(text)); };
  for (std::string line; std::getline(lines, line);) {
    if (const Found function = search(line, "Function properties for ([^ \r\n]+)"); !function.empty()) {
      current = function[1];
    }
    const Found frame =
        search(line, "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
    if (!frame.empty() && !current.empty()) {
      report.functions[current] = {number(frame[1]), number(frame[2]), number(frame[3])};
    }
    const Found used = search(line, "Used ([0-9]+) registers");
    if (used.empty()) continue;
    found_any = true;
    report.registers = number(used[1]);
    const Found barriers = search(line, "used ([0-9]+) barriers");
    if (!barriers.empty()) report.barriers = number(barriers[1]);
    const Found shared = search(line, "([0-9]+) bytes smem");
    if (!shared.empty()) report.static_shared_bytes = number(shared[1]);
  }
  if (!found_any) return std::nullopt;
  return report;
}

PtxasRun run_ptxas(const std::string& ptx_file, int architecture) {
  PtxasRun run;
  const char* const home = std::getenv("CUDA_HOME");
  run.program = find_program("ptxas", {std::string(home != nullptr ? home : "/usr/local/cuda") + "/bin"});
  if (run.program.empty()) return run;
  const std::string version = run_program({.command = {run.program, "--version"}}).output;
  const Found release = search(version, "release ([0-9.]+)");
  if (!release.empty()) run.version = release[1];
  const ProgramResult result =
      run_program({.command = {run.program, "-v", fmt::format("-arch=sm_{}", architecture), ptx_file, "-o",
                               "/dev/null"}});
  run.accepted = result.exit_code == 0;
  run.log = result.output;
  return run;
}

}  // namespace gyre::tools
