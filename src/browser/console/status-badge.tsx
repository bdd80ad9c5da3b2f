/** How good each state is; a state that is not listed is neutral. */
const MOODS: Readonly<Record<string, 'good' | 'warn' | 'bad'>> = {
  closed: 'good',
  verified: 'good',
  delivered: 'good',
  settled: 'good',
  hardware: 'good',
  holds: 'good',
  active: 'good',
  half_open: 'warn',
  pending: 'warn',
  open: 'warn',
  simulated: 'warn',
  unattested: 'warn',
  unknown: 'warn',
  suspended: 'warn',
  'hardware-os-unpinned': 'warn',
  resting: 'bad',
  failed: 'bad',
  quarantined: 'bad',
  erased: 'bad',
}

/** A label for a state, coloured by how good it is. */
export const StatusBadge = ({ text }: { readonly text: string }) => (
  <span class="state" data-mood={MOODS[text] ?? 'idle'}>
    {text.replaceAll('_', ' ')}
  </span>
)

/** The states of a route's circuit breaker, in the words shown to operators. */
export const CIRCUIT_LABELS: Readonly<Record<string, string>> = {
  closed: 'active',
  half_open: 'pending',
  open: 'resting',
}
