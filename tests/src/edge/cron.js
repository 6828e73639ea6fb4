// Starts the worker as a cron trigger does, and answers how that ended.
export default {
  async fetch(_, env) {
    return Response.json(await env.APP.scheduled({ cron: "* * * * *", scheduledTime: new Date() }));
  },
};
