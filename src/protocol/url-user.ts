/** Whether an address contains a user name or a password, which an HTTP client would send to the server. */
export function namesUser({ username, password }: Pick<URL, 'username' | 'password'>): boolean {
  return username !== '' || password !== ''
}
