import { expect, test } from 'vitest'
import { HostCounts } from '../../../src/enclave/telemetry/host-counts.ts'
import { readFamilies } from '../../../src/protocol/exposition.ts'

test('what happens outside of the workers is counted from zero', () => {
  const counts = new HostCounts()
  const samples = () =>
    Object.fromEntries(readFamilies(counts.render()).flatMap((family) => [...family.samples]))
  expect(samples()).toEqual({
    'cmr_carriers_lost_total{why="ended"}': 0,
    'cmr_carriers_lost_total{why="stood still"}': 0,
    cmr_clients_unread_total: 0,
  })
  counts.carrierLost('ended')
  counts.carrierLost('ended')
  counts.carrierLost('stood still')
  counts.clientsUnread(3)
  expect(samples()).toEqual({
    'cmr_carriers_lost_total{why="ended"}': 2,
    'cmr_carriers_lost_total{why="stood still"}': 1,
    cmr_clients_unread_total: 3,
  })
})
