import type { Product } from './product.ts'

/** Security patch levels by component; a component that a product does not have is absent. */
export type Tcb = Partial<Record<TcbComponent, number>>

export type TcbComponent = 'fmc' | 'bootloader' | 'tee' | 'snp' | 'microcode'

/** Byte of TCB_VERSION that holds each component. The other bytes are reserved and zero. */
export const TCB_LAYOUT: Record<Product, readonly (readonly [TcbComponent, byte: number])[]> = {
  milan: [
    ['bootloader', 0],
    ['tee', 1],
    ['snp', 6],
    ['microcode', 7],
  ],
  genoa: [
    ['bootloader', 0],
    ['tee', 1],
    ['snp', 6],
    ['microcode', 7],
  ],
  turin: [
    ['fmc', 0],
    ['bootloader', 1],
    ['tee', 2],
    ['snp', 3],
    ['microcode', 7],
  ],
}

/** The components of a TCB_VERSION, or undefined when a byte that the product's layout reserves is set. */
export function readTcb(product: Product, bytes: Uint8Array): Tcb | undefined {
  const layout = TCB_LAYOUT[product]
  const reserved = bytes.filter((_, index) => layout.every(([, byte]) => byte !== index))
  if (reserved.some((byte) => byte !== 0)) return undefined
  return Object.fromEntries(layout.map(([component, byte]) => [component, bytes[byte] ?? 0]))
}

/**
 * Components of `tcb` that are below those of `floor`. Each is compared by itself: a high one does not compensate for a
 * low one.
 */
export function componentsBelow(tcb: Tcb, floor: Tcb): string[] {
  return components(floor)
    .filter(([component, least]) => (tcb[component] ?? -1) < least)
    .map(([component, least]) => `${component} ${tcb[component] ?? 'absent'} below ${least}`)
}

/** Components that differ, including those that only one side has. */
export function componentsUnequal(left: Tcb, right: Tcb): string[] {
  const names = new Set([...components(left), ...components(right)].map(([component]) => component))
  return [...names]
    .filter((component) => left[component] !== right[component])
    .map((name) => `${name} ${left[name] ?? 'absent'} is not ${right[name] ?? 'absent'}`)
}

/** For display: `bootloader 4, tee 0, snp 27, microcode 222`. */
export function describeTcb(tcb: Tcb): string {
  return components(tcb)
    .map(([component, level]) => `${component} ${level}`)
    .join(', ')
}

const COMPONENTS: readonly TcbComponent[] = ['fmc', 'bootloader', 'tee', 'snp', 'microcode']

function components(tcb: Tcb): [TcbComponent, number][] {
  return COMPONENTS.flatMap((component) => {
    const level = tcb[component]
    return level === undefined ? [] : [[component, level]]
  })
}
