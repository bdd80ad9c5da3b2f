/** Why a tool's settings were not changed, in one line. */
export class ConnectError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ConnectError'
  }
}
