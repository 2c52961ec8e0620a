// where says at which address to listen: that which Cabrank gives, or all addresses at PORT.
export function where(port: number): { host: string; port: number } {
  const [host, told] = (process.env.CABRANK_ADDR ?? '').split(/:(?=\d+$)/);
  return told ? { host, port: Number(told) } : { host: '0.0.0.0', port: Number(process.env.PORT ?? port) };
}
