import { LaunchError } from './launch-error.ts'

interface CpuModel {
  readonly family: number
  readonly model: number
  readonly stepping: number
}

/** QEMU's CPU models of AMD servers. Their versions (`-v2`) change features, never these numbers. */
const CPU_MODELS: ReadonlyMap<string, CpuModel> = new Map([
  ['EPYC', { family: 23, model: 1, stepping: 2 }],
  ['EPYC-IBPB', { family: 23, model: 1, stepping: 2 }],
  ['EPYC-Rome', { family: 23, model: 49, stepping: 0 }],
  ['EPYC-Milan', { family: 25, model: 1, stepping: 1 }],
  ['EPYC-Genoa', { family: 25, model: 17, stepping: 0 }],
  ['EPYC-Turin', { family: 26, model: 0, stepping: 0 }],
])

/**
 * The CPU signature of a QEMU CPU model such as `EPYC-v4` or `EPYC-Milan`, or the signature itself in hex
 * (`0x800f12`).
 * @throws LaunchError for any other text; the message lists the known names
 */
export function cpuSignature(type: string): number {
  if (/^0x[0-9a-f]{1,8}$/.test(type)) return Number.parseInt(type, 16)
  const model = CPU_MODELS.get(type.replace(/-v[1-9]\d?$/, ''))
  if (model === undefined) {
    const known = [...CPU_MODELS.keys()].join(', ')
    throw new LaunchError(
      `${type} is no known CPU type: give one of ${known}, with or without a version, or a signature (0x800f12)`,
    )
  }
  return packSignature(model)
}

/** CPUID Fn0000_0001 EAX: families above 15 are split into a base of 15 and an extension. */
function packSignature({ family, model, stepping }: CpuModel): number {
  const baseFamily = Math.min(family, 15)
  const extendedFamily = family - baseFamily
  return (
    (extendedFamily << 20) |
    ((model >> 4) << 16) |
    (baseFamily << 8) |
    ((model & 15) << 4) |
    stepping
  )
}
