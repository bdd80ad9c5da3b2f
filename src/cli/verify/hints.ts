import type { Check } from '../../verify/check.ts'

interface Hint {
  /** Whether the hint applies to this failed check. */
  readonly helps: (failed: Check) => boolean
  readonly text: string
  /** Only for the router that `npm start` runs on this machine. */
  readonly local?: true
}

/** Hints for failed checks that have a harmless cause. */
const HINTS: readonly Hint[] = [
  {
    helps: ({ name, detail }) =>
      name.endsWith('simulated_platform') ||
      (name.endsWith('trust_bundle_environment') && detail.startsWith('made for local')),
    text: 'this is the simulated platform of npm start, which proves nothing; --local accepts it, and so does --allow-simulated',
  },
  {
    helps: ({ name }) => name === 'router_attestation.trust_bundle_header',
    text: 'each npm start makes another release root, and this receipt seems to be of an earlier one: ask the router something, and verify that receipt',
    local: true,
  },
]

/** The hints for these checks. */
export function hintsFor(checks: readonly Check[], { isLocal }: { isLocal: boolean }): string[] {
  const failed = checks.filter(({ ok }) => !ok)
  return HINTS.filter(({ local }) => local === undefined || isLocal)
    .filter(({ helps }) => failed.some(helps))
    .map(({ text }) => text)
}
