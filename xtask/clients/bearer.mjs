// Gives every request of the process a bearer token, because the conformance suite has no option for one. It asks by
// undici (fetch, too, is undici's) and by node:http; both are given it below what the suite sets itself.
import http from 'node:http';
import { getGlobalDispatcher, setGlobalDispatcher } from 'undici';

const token = `Bearer ${process.env.BEARER}`;

const tokened = (headers) =>
  Array.isArray(headers) ? [...headers, 'authorization', token] : { ...headers, authorization: token };

const dispatcher = (dispatch) => (options, handler) =>
  dispatch({ ...options, headers: tokened(options.headers) }, handler);
setGlobalDispatcher(getGlobalDispatcher().compose(dispatcher));

const { request } = http;
http.request = (options, answered) => request({ ...options, headers: tokened(options.headers) }, answered);
