import type { RouterConfig } from '../../protocol/config.ts'
import type { Platform } from '../../protocol/boot.ts'

/** What an operator must not overlook, told at every start and every reload. */
export function warnings(config: RouterConfig, platform: Platform, standin: boolean): string[] {
  const unattested = Object.entries(config.providers)
    .filter(([, { attestation }]) => attestation.adapter === 'none')
    .map(([name]) => name)
  return [
    ...(platform === 'simulated'
      ? [
          '  !!!!!!!! SIMULATED PLATFORM !!!!!!!!',
          '  service.allow_simulated is set and this machine has no SEV-SNP: the attestation is made up,',
          '  receipts say so, clients refuse it, and the operator of this machine can read everything.',
        ]
      : []),
    ...(standin ? ['  !!!!!!!! STAND-IN PROVIDER: its answers are made up !!!!!!!!'] : []),
    ...(unattested.length === 0
      ? []
      : [`  without attestation, by service.allow_unattested: ${unattested.join(', ')}`]),
  ]
}
