#include "cubin.hpp"

#include <fmt/format.h>
#include <gelf.h>
#include <gyre/bridge/errors/error.hpp>

#include <algorithm>
#include <cstring>
#include <memory>

namespace gyre::tools {

namespace {

// What .nv.info holds: records of a format, an attribute and two bytes of value or of length. The names are
// those that cuobjdump --dump-elf prints.
constexpr uint8_t format_with_length = 4;
enum : uint8_t { attribute_frame_size = 0x11, attribute_register_count = 0x2f };

// What libelf has found; throws its reason where that is nothing.
template <class T>
T* found(T* result) {
  if (result == nullptr) {
    throw Error(fmt::format("reading a cubin: {}; it is damaged, compile it again", elf_errmsg(-1)));
  }
  return result;
}

struct Symbol {
  uint32_t index;
  std::string_view name;
  Elf64_Sym entry;
  bool is_function() const { return ELF64_ST_TYPE(entry.st_info) == STT_FUNC; }
};

// Refers to the file, which libelf does not copy.
class Cubin {
 public:
  explicit Cubin(std::string_view file) : elf_(nullptr, elf_end) {
    elf_version(EV_CURRENT);
    elf_.reset(elf_memory(const_cast<char*>(file.data()), file.size()));  // not written to
    if (elf64_getehdr(elf_.get()) == nullptr) {
      throw Error("reading a cubin: it is no 64-bit ELF file; compile it again");
    }
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
      sections_.push_back(section);
    }
  }

  const std::vector<Elf_Scn*>& sections() const { return sections_; }
  static const Elf64_Shdr& header(Elf_Scn* section) { return *found(elf64_getshdr(section)); }
  std::string_view name(Elf_Scn* section) const {
    size_t names = 0;
    if (elf_getshdrstrndx(elf_.get(), &names) != 0) found<void>(nullptr);
    return found(elf_strptr(elf_.get(), names, header(section).sh_name));
  }
  // Empty where the file has no bytes for it.
  static std::string_view content(Elf_Scn* section) {
    const Elf_Data& data = *found(elf_rawdata(section, nullptr));
    return data.d_buf == nullptr ? std::string_view()
                                 : std::string_view(static_cast<const char*>(data.d_buf), data.d_size);
  }
  Elf_Scn* home(const Symbol& symbol) const { return found(elf_getscn(elf_.get(), symbol.entry.st_shndx)); }
  std::vector<Symbol> symbols() const {
    std::vector<Symbol> all;
    for (Elf_Scn* const section : sections_) {
      if (header(section).sh_type != SHT_SYMTAB) continue;
      Elf_Data* const table = found(elf_getdata(section, nullptr));
      Elf64_Sym entry;
      for (int i = 0; gelf_getsym(table, i, &entry) != nullptr; ++i) {
        const char* const name = elf_strptr(elf_.get(), header(section).sh_link, entry.st_name);
        all.push_back({uint32_t(i), found(name), entry});
      }
    }
    return all;
  }

 private:
  std::unique_ptr<Elf, int (*)(Elf*)> elf_;
  std::vector<Elf_Scn*> sections_;
};

void read_info(std::string_view info, uint32_t kernel_symbol, CubinFacts& facts) {
  const auto number = [&info](size_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, info.data() + offset, sizeof value);
    return value;
  };
  while (info.size() >= 4) {
    const auto format = uint8_t(info[0]), attribute = uint8_t(info[1]);
    const size_t length = format == format_with_length ? number(0) >> 16 : 0;
    if (info.size() - 4 < length) throw Error("reading a cubin: its .nv.info is cut off; compile it again");
    if (length >= 8 && number(4) == kernel_symbol) {
      if (attribute == attribute_register_count) facts.registers = number(8);
      if (attribute == attribute_frame_size) facts.frame_bytes = number(8);
    }
    info.remove_prefix(4 + length);
  }
}

}  // namespace

CubinFacts read_cubin(std::string_view file, std::string_view kernel) {
  const Cubin cubin(file);
  CubinFacts facts;
  const auto symbols = cubin.symbols();
  const auto found = std::find_if(symbols.begin(), symbols.end(), [kernel](const Symbol& symbol) {
    return symbol.name == kernel && symbol.is_function();
  });
  if (found == symbols.end()) {
    throw Error(fmt::format("reading a cubin: it has no kernel {}; compile it again", kernel));
  }
  facts.code_bytes = cubin.header(cubin.home(*found)).sh_size;
  for (Elf_Scn* const section : cubin.sections()) {
    const std::string_view name = cubin.name(section);
    if (name == ".nv.info") read_info(cubin.content(section), found->index, facts);
    if (!name.starts_with(".nv.constant")) continue;
    if (name == fmt::format(".nv.constant0.{}", kernel)) {
      facts.parameter_bytes = cubin.header(section).sh_size;
    } else {
      facts.constant_bytes += cubin.header(section).sh_size;
    }
  }
  std::vector<std::pair<uint64_t, CubinFunction>> functions;
  const std::string prefix = fmt::format("${}$", kernel);
  for (const Symbol& symbol : symbols) {
    if (!symbol.is_function() || symbol.entry.st_shndx != found->entry.st_shndx) continue;
    if (symbol.index == found->index) continue;
    std::string_view name = symbol.name;
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    functions.push_back({symbol.entry.st_value, {std::string(name), symbol.entry.st_size}});
  }
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [address, function] : functions) facts.functions.push_back(std::move(function));
  return facts;
}

std::map<std::string, std::span<const std::byte>> cubin_variables(std::string_view file) {
  const Cubin cubin(file);
  std::map<std::string, std::span<const std::byte>> variables;
  for (const Symbol& symbol : cubin.symbols()) {
    const Elf64_Sym& entry = symbol.entry;
    if (ELF64_ST_TYPE(entry.st_info) != STT_OBJECT || entry.st_shndx == SHN_UNDEF ||
        entry.st_shndx >= SHN_LORESERVE) {
      continue;
    }
    const std::string_view home = cubin.content(cubin.home(symbol));
    if (home.empty()) continue;
    if (entry.st_value > home.size() || home.size() - entry.st_value < entry.st_size) {
      throw Error(fmt::format("reading a cubin: the variable {} lies outside of its section", symbol.name));
    }
    variables[std::string(symbol.name)] =
        std::as_bytes(std::span(home.substr(entry.st_value, entry.st_size)));
  }
  return variables;
}

}  // namespace gyre::tools
