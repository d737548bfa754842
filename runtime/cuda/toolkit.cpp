#include <fmt/format.h>
#include <gyre/runtime/cuda/toolkit.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gyre::cuda {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders_in(const char* list) {
  std::vector<std::string> folders;
  if (list == nullptr) return folders;
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

// The folders of headers in a place: CUB and libcu++ lie in include/cccl since CUDA 13.
std::vector<std::string> include_folders(const ToolkitPlace& place) {
  std::vector<std::string> found;
  for (const std::string& folder : place.folders) {
    for (const char* const below : {"/include", "/include/cccl"}) {
      std::error_code failed;
      if (fs::is_directory(folder + below, failed)) found.push_back(folder + below);
    }
  }
  return found;
}

// The number in "#define `macro` 13000" of the first of `folders` with that file; 0 if there is none.
int number_defined(const std::vector<std::string>& folders, std::string_view file, std::string_view macro) {
  for (const std::string& folder : folders) {
    std::ifstream stream(fmt::format("{}/{}", folder, file));
    const std::string start = fmt::format("#define {} ", macro);
    for (std::string line; std::getline(stream, line);) {
      if (line.compare(0, start.size(), start) != 0) continue;
      const char* const digits = line.c_str() + std::min(line.size(), line.find_first_of("0123456789"));
      int number = 0;
      std::from_chars(digits, line.c_str() + line.size(), number);
      return number;
    }
  }
  return 0;
}

constexpr const char* runtime_header = "cuda_runtime_api.h";

// 13000 for CUDA 13.0; 0: no toolkit is there.
int cuda_version(const std::vector<std::string>& folders) {
  return number_defined(folders, runtime_header, "CUDART_VERSION");
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
  text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
  return text;
}

// Cuts the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// Removes what /* … */ has of a line, where `inside` says that it begins in one.
std::string_view without_comment(std::string_view line, bool& inside) {
  if (inside) {
    const size_t end = line.find("*/");
    if (end == std::string_view::npos) return {};
    inside = false;
    line.remove_prefix(end + 2);
  }
  const size_t begin = line.find("/*");
  if (begin != std::string_view::npos && begin < line.find("//")) {
    inside = line.find("*/", begin + 2) == std::string_view::npos;
    line = line.substr(0, begin);
  }
  return line;
}

struct Directive {
  std::string_view name;  // "include"; empty: the line is none
  std::string_view rest;
};
Directive directive_of(std::string_view line) {
  line = without_blanks(line);
  if (line.substr(0, 1) != "#") return {};
  line = without_blanks(line.substr(1));
  const std::string_view name = line.substr(0, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  return {name, without_blanks(line.substr(name.size()))};
}

// What `rest` of #include names; empty for a macro.
std::string_view included_name(std::string_view rest) {
  const char last = rest.substr(0, 1) == "<" ? '>' : '"';
  if (rest.substr(0, 1) != "<" && rest.substr(0, 1) != "\"") return {};
  rest.remove_prefix(1);
  const size_t end = rest.find(last);
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

enum class Condition { holds, fails, unknown };

Condition negated(Condition condition) {
  if (condition == Condition::unknown) return condition;
  return condition == Condition::holds ? Condition::fails : Condition::holds;
}

// Of the conditions, those of NVRTC's own macros are known.
Condition condition_of(const Directive& directive) {
  std::string text(directive.rest);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '(' || c == ')'; });
  const auto is_nvrtc = [](std::string_view name) {
    return name == "__CUDACC_RTC__" || name == "__CUDACC__";
  };
  if (directive.name != "if") {
    if (!is_nvrtc(text)) return Condition::unknown;
    return directive.name == "ifdef" ? Condition::holds : Condition::fails;
  }
  constexpr std::string_view defined = "defined", not_defined = "!defined";
  const std::string_view all = text;
  if (all.substr(0, defined.size()) == defined && is_nvrtc(all.substr(defined.size())))
    return Condition::holds;
  if (all.find("||") != std::string_view::npos) return Condition::unknown;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find("&&", at), all.size());
    const std::string_view term = all.substr(at, end - at);
    at = end + 2;
    if (term.substr(0, not_defined.size()) == not_defined && is_nvrtc(term.substr(not_defined.size()))) {
      return Condition::fails;
    }
  }
  return Condition::unknown;
}

class IncludeScan {
 public:
  explicit IncludeScan(std::span<const SourceFile> headers) : headers_(headers) {}

  void read(std::string_view text, bool is_gyres) {
    std::vector<Condition> conditions;
    bool in_comment = false;
    while (!text.empty()) {
      const Directive directive = directive_of(without_comment(take_line(text), in_comment));
      if (directive.name.empty() || directive.name == "pragma") continue;
      const bool skipped =
          std::find(conditions.begin(), conditions.end(), Condition::fails) != conditions.end();
      if (directive.name == "include") {
        if (!skipped) include(included_name(directive.rest), is_gyres);
      } else if (directive.name.substr(0, 2) == "if") {
        conditions.push_back(condition_of(directive));
        if (!is_gyres && !skipped && conditions.back() == Condition::unknown) leads_ = false;
      } else if (directive.name == "endif") {
        if (!conditions.empty()) conditions.pop_back();
      } else if (directive.name.substr(0, 2) == "el") {
        if (conditions.empty()) continue;
        const bool is_else = directive.name == "else";
        Condition& condition = conditions.back();
        condition = is_else                         ? negated(condition)
                    : condition == Condition::holds ? Condition::fails
                                                    : Condition::unknown;
        if (!is_gyres && condition == Condition::unknown) leads_ = false;
      } else if (!is_gyres && !skipped) {
        leads_ = false;
      }
    }
  }
  std::vector<OutsideHeader> found;

 private:
  // Gyre's own headers include outside headers only where the actors do.
  void include(std::string_view name, bool by_gyres) {
    if (name.empty() || std::find(seen_.begin(), seen_.end(), name) != seen_.end()) return;
    const auto own = std::find_if(headers_.begin(), headers_.end(),
                                  [name](const SourceFile& file) { return file.name == name; });
    if (own == headers_.end() && by_gyres) return;
    seen_.push_back(name);
    if (own == headers_.end()) {
      found.push_back({name, leads_});
    } else {
      read(own->text, name.substr(0, 5) == "gyre/");
    }
  }

  std::span<const SourceFile> headers_;
  std::vector<std::string_view> seen_;
  bool leads_ = true;
};

}  // namespace

std::vector<ToolkitPlace> toolkit_places() {
  const char* const home = secure_getenv("CUDA_HOME");
  return {{"$CUDA_HOME",
           home == nullptr || *home == '\0' ? std::vector<std::string>{} : std::vector<std::string>{home}},
          {"/usr/local/cuda", {"/usr/local/cuda"}},
          {"$GYRE_CUDA_PATH", folders_in(secure_getenv("GYRE_CUDA_PATH"))}};
}

bool ToolkitHeaders::has(std::string_view name) const {
  return std::any_of(folders.begin(), folders.end(), [name](const std::string& folder) {
    std::error_code failed;
    return fs::is_regular_file(fmt::format("{}/{}", folder, name), failed);
  });
}

ToolkitHeaders find_toolkit_headers(int major) {
  for (const ToolkitPlace& place : toolkit_places()) {
    std::vector<std::string> folders = include_folders(place);
    const int version = cuda_version(folders);
    if (version / 1000 != major) continue;
    const int cccl = number_defined(folders, "cuda/std/__cccl/version.h", "CCCL_VERSION");
    std::string text = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
    if (cccl != 0) {
      text += fmt::format(", CCCL {}.{}.{}", cccl / 1'000'000, cccl / 1000 % 1000, cccl % 1000);
    }
    return {std::move(folders), std::move(text)};
  }
  return {};
}

std::string explain_toolkit_search(int major) {
  std::string places, used;
  for (const ToolkitPlace& place : toolkit_places()) {
    const std::vector<std::string> folders = include_folders(place);
    const int version = cuda_version(folders);
    std::string found;
    if (place.folders.empty()) {
      found = "not set";
    } else if (version == 0) {
      found = fmt::format("no {} in {}", runtime_header,
                          fmt::join(folders.empty() ? place.folders : folders, ", "));
    } else {
      found = fmt::format("CUDA {}.{} in {}", version / 1000, version % 1000 / 10, fmt::join(folders, ", "));
    }
    if (used.empty() && version / 1000 == major) used = place.name;
    places += fmt::format("{}{} ({})", places.empty() ? "" : ", ", place.name, found);
  }
  return fmt::format(
      "Headers of the CUDA toolkit are those of CUDA {} in the first of {}: {}. Missing ones are in the "
      "packages cuda-cudart-dev, cuda-crt and cuda-cccl, or in pip's nvidia-cuda-runtime, nvidia-cuda-crt "
      "and "
      "nvidia-cuda-cccl; or set $CUDA_HOME to the toolkit's folder",
      major, places, used.empty() ? "none has them" : "these are " + used + "'s");
}

std::vector<OutsideHeader> outside_headers(std::string_view text, std::span<const SourceFile> headers) {
  IncludeScan scan(headers);
  scan.read(text, false);
  return std::move(scan.found);
}

std::string with_angle_includes(std::string_view text) {
  std::string result(text);
  for (std::string_view rest = text; !rest.empty();) {
    const Directive directive = directive_of(take_line(rest));
    if (directive.name != "include" || directive.rest.substr(0, 1) != "\"") continue;
    const std::string_view name = included_name(directive.rest);
    if (name.empty()) continue;
    const auto at = size_t(name.data() - text.data());
    result[at - 1] = '<';
    result[at + name.size()] = '>';
  }
  return result;
}

}  // namespace gyre::cuda
