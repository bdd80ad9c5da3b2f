import type { RouterConfig } from '../../protocol/config.ts'
import { pinsNoOs, type ProviderPolicy } from '../../protocol/provider-policy.ts'
import type { Platform } from '../../protocol/boot.ts'

/** The conditions under which a router in production mode runs. */
export interface Footing {
  readonly platform: Platform
  /** Whether a provider is the stand-in. */
  readonly standin: boolean
  /** Whether a part that crashes writes its memory to the disk. */
  readonly coreDumps: boolean
}

/** The warnings to print at every start and every reload. */
export function warnings(
  config: RouterConfig,
  { platform, standin, coreDumps }: Footing,
): string[] {
  const namesOf = (matches: (policy: ProviderPolicy) => boolean) =>
    Object.entries(config.providers)
      .filter(([, { attestation }]) => matches(attestation))
      .map(([name]) => name)
  const unattested = namesOf(({ adapter }) => adapter === 'none')
  const unpinned = namesOf(pinsNoOs)
  return [
    ...(platform === 'simulated'
      ? [
          '  !!!!!!!! SIMULATED PLATFORM !!!!!!!!',
          '  service.allow_simulated is set and this machine has no SEV-SNP: the attestation is made up,',
          '  receipts say so, clients refuse it, and the operator of this machine can read everything.',
        ]
      : []),
    ...(standin ? ['  !!!!!!!! STAND-IN PROVIDER: its answers are made up !!!!!!!!'] : []),
    ...(coreDumps
      ? [
          '  core dumps are on: a part that crashes writes its memory, keys and prompts, to the disk; set LimitCORE=0, or ulimit -c 0',
        ]
      : []),
    ...(unattested.length === 0
      ? []
      : [`  without attestation, by service.allow_unattested: ${unattested.join(', ')}`]),
    ...(unpinned.length === 0
      ? []
      : [
          `  under an unknown operating system, by service.allow_unpinned_os: ${unpinned.join(', ')}`,
        ]),
  ]
}
