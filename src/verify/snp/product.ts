/** The supported EPYC generations. An unknown one is refused, never guessed. */
export const PRODUCTS = ['milan', 'genoa', 'turin'] as const

export type Product = (typeof PRODUCTS)[number]

/** The name in AMD's certificates. */
export const AMD_NAMES: Record<Product, string> = { milan: 'Milan', genoa: 'Genoa', turin: 'Turin' }

/** CPUID family, and its models as inclusive ranges (Bergamo and Siena are Genoa). */
const CPUID_RANGES: readonly [Product, family: number, first: number, last: number][] = [
  ['milan', 0x19, 0x00, 0x0f],
  ['genoa', 0x19, 0x10, 0x1f],
  ['genoa', 0x19, 0xa0, 0xaf],
  ['turin', 0x1a, 0x00, 0x11],
]

/** The product of a CPUID family and model, from reports of version 3 and later. */
export function productOfCpuid(family: number, model: number): Product | undefined {
  return CPUID_RANGES.find(
    ([, of, first, last]) => family === of && model >= first && model <= last,
  )?.[0]
}
