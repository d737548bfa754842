#include "cubin.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <algorithm>
#include <cstring>

namespace gyre::tools {

namespace {

// What .nv.info holds: records of a format, an attribute and two bytes of value or of length. The names are
// those that cuobjdump --dump-elf prints.
constexpr uint8_t format_with_length = 4;
enum : uint8_t { attribute_frame_size = 0x11, attribute_register_count = 0x2f };

class Elf {
 public:
  explicit Elf(std::string_view file) : file_(file), header_(at(Elf64_Ehdr{}, 0)) {
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64 ||
        header_.e_shentsize != sizeof(Elf64_Shdr)) {
      throw Error("reading a cubin: it is no 64-bit ELF file; compile it again");
    }
    for (size_t n = 0; n < header_.e_shnum; ++n) {
      sections_.push_back(at(Elf64_Shdr{}, header_.e_shoff + n * sizeof(Elf64_Shdr)));
    }
  }

  template <class T>
  T at(T value, uint64_t offset) const {
    const std::string_view bytes = part(offset, sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view part(uint64_t offset, uint64_t size) const {
    if (offset > file_.size() || file_.size() - offset < size) {
      throw Error(
          fmt::format("reading a cubin: it has {} bytes, and says that {} bytes lie at {}; it is cut off, "
                      "compile it again",
                      file_.size(), size, offset));
    }
    return file_.substr(offset, size);
  }
  std::string_view name(uint32_t strings, uint32_t offset) const {
    const std::string_view table = content(strings);
    if (offset >= table.size()) throw Error("reading a cubin: a name lies outside of its table");
    return table.substr(offset, table.find('\0', offset) - offset);
  }
  size_t sections() const { return sections_.size(); }
  const Elf64_Shdr& section(size_t n) const {
    if (n >= sections_.size()) throw Error("reading a cubin: it names a section that it does not have");
    return sections_[n];
  }
  std::string_view section_name(size_t n) const { return name(header_.e_shstrndx, section(n).sh_name); }
  std::string_view content(size_t n) const {
    return section(n).sh_type == SHT_NOBITS ? std::string_view()
                                            : part(section(n).sh_offset, section(n).sh_size);
  }

  struct Symbol {
    uint32_t index;
    std::string_view name;
    Elf64_Sym entry;
  };
  std::vector<Symbol> symbols() const {
    std::vector<Symbol> all;
    for (size_t n = 0; n < sections(); ++n) {
      if (section(n).sh_type != SHT_SYMTAB) continue;
      const uint64_t count = section(n).sh_size / sizeof(Elf64_Sym);
      for (uint64_t i = 0; i < count; ++i) {
        const auto entry = at(Elf64_Sym{}, section(n).sh_offset + i * sizeof(Elf64_Sym));
        all.push_back({uint32_t(i), name(section(n).sh_link, entry.st_name), entry});
      }
    }
    return all;
  }

 private:
  std::string_view file_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
};

bool is_variable(const Elf::Symbol& symbol) {
  return ELF64_ST_TYPE(symbol.entry.st_info) == STT_OBJECT && symbol.entry.st_shndx != SHN_UNDEF &&
         symbol.entry.st_shndx < SHN_LORESERVE;
}

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

CubinFacts read_cubin(std::string_view cubin, std::string_view kernel) {
  const Elf elf(cubin);
  CubinFacts facts;
  const auto symbols = elf.symbols();
  const auto found = std::find_if(symbols.begin(), symbols.end(), [kernel](const Elf::Symbol& symbol) {
    return symbol.name == kernel && ELF64_ST_TYPE(symbol.entry.st_info) == STT_FUNC;
  });
  if (found == symbols.end()) {
    throw Error(fmt::format("reading a cubin: it has no kernel {}; compile it again", kernel));
  }
  const uint16_t code = found->entry.st_shndx;
  facts.code_bytes = elf.section(code).sh_size;
  for (size_t n = 0; n < elf.sections(); ++n) {
    const std::string_view name = elf.section_name(n);
    if (name == ".nv.info") read_info(elf.content(n), found->index, facts);
    if (name.substr(0, 12) != ".nv.constant") continue;
    if (name == fmt::format(".nv.constant0.{}", kernel)) {
      facts.parameter_bytes = elf.section(n).sh_size;
    } else {
      facts.constant_bytes += elf.section(n).sh_size;
    }
  }
  std::vector<std::pair<uint64_t, CubinFunction>> functions;
  const std::string prefix = fmt::format("${}$", kernel);
  for (const Elf::Symbol& symbol : symbols) {
    if (ELF64_ST_TYPE(symbol.entry.st_info) != STT_FUNC || symbol.entry.st_shndx != code) continue;
    if (symbol.index == found->index) continue;
    std::string_view name = symbol.name;
    if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
    functions.push_back({symbol.entry.st_value, {std::string(name), symbol.entry.st_size}});
  }
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [address, function] : functions) facts.functions.push_back(std::move(function));
  return facts;
}

std::span<const std::byte> cubin_variable(std::string_view cubin, std::string_view name) {
  const Elf elf(cubin);
  for (const Elf::Symbol& symbol : elf.symbols()) {
    if (symbol.name != name || !is_variable(symbol)) continue;
    const std::string_view home = elf.content(symbol.entry.st_shndx);
    if (symbol.entry.st_value > home.size() || home.size() - symbol.entry.st_value < symbol.entry.st_size) {
      throw Error(fmt::format("reading a cubin: the variable {} lies outside of its section", name));
    }
    return std::as_bytes(std::span(home.substr(symbol.entry.st_value, symbol.entry.st_size)));
  }
  return {};
}

std::vector<std::string> cubin_variables(std::string_view cubin) {
  std::vector<std::string> names;
  const Elf elf(cubin);
  for (const Elf::Symbol& symbol : elf.symbols()) {
    if (is_variable(symbol)) names.emplace_back(symbol.name);
  }
  return names;
}

}  // namespace gyre::tools
