/** Why a carrier was lost. */
export type CarrierEnd = 'ended' | 'stood still'

/** Counts, since the daemon started, of events on this host outside of the workers, in the Prometheus text format. */
export class HostCounts {
  readonly #carriersLost = { ended: 0, 'stood still': 0 }
  #clientsUnread = 0

  carrierLost(why: CarrierEnd): void {
    this.#carriersLost[why] += 1
  }

  /** Counts clients that were disconnected because they did not read the data that was waiting for them. */
  clientsUnread(count: number): void {
    this.#clientsUnread += count
  }

  render(): string {
    const lost = Object.entries(this.#carriersLost)
    return [
      '# HELP cmr_carriers_lost_total Threads of the daemon that ended, or stood still and were ended.',
      '# TYPE cmr_carriers_lost_total counter',
      ...lost.map(([why, count]) => `cmr_carriers_lost_total{why="${why}"} ${count}`),
      '# HELP cmr_clients_unread_total Clients that were disconnected because they did not read.',
      '# TYPE cmr_clients_unread_total counter',
      `cmr_clients_unread_total ${this.#clientsUnread}`,
      '',
    ].join('\n')
  }
}
